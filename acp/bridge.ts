/**
 * Owns: the Agent Client Protocol on one connection, in the version that the editor speaks: its sessions are
 * conversations (docs/editors.md). An editor that goes away stops nothing.
 */
import { agentProtocolRouter, type AgentProtocolRouter } from "@agentclientprotocol/sdk/experimental/v2";
import type { Client } from "../client/index.ts";
import { agentV1 } from "./v1.ts";
import { agentV2 } from "./v2.ts";

/** The agent that an editor talks to, on one server. */
export const bridgeTo = (client: Client): AgentProtocolRouter =>
  agentProtocolRouter().withV1(agentV1(client)).withV2(agentV2(client));
