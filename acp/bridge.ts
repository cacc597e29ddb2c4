/**
 * Owns: the Agent Client Protocol, version 1: an editor's sessions are conversations (docs/editors.md). An editor that
 * goes away stops nothing.
 */
import {
  agent,
  RequestError,
  type AgentApp,
  type AgentContext,
  type InitializeResponse,
  type SessionModeState,
} from "@agentclientprotocol/sdk";
import { allConversations } from "../client/all-conversations.ts";
import {
  newId,
  Refused,
  type Client,
  type Conversation,
  type LoadedConversation,
  type Message,
} from "../client/index.ts";
import { promptOf } from "./prompt.ts";
import { Session } from "./session.ts";

const CAPABILITIES: InitializeResponse = {
  protocolVersion: 1,
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
  },
  agentInfo: { name: "bedrock", title: "Bedrock", version: "0.1.0" },
  authMethods: [],
};

const MODES = [
  { id: "restricted", name: "Restricted", description: "Reads, and changes nothing: by the kernel." },
  { id: "unrestricted", name: "Unrestricted", description: "Its commands have your rights." },
];

/** Messages of one request. */
const PAGE = 1000;

/** The agent that an editor talks to, on one server. */
export function bridgeTo(client: Client): AgentApp {
  const sessions = new Map<string, Session>();
  const sessionOf = (id: string): Session => {
    const session = sessions.get(id);
    if (session === undefined)
      throw RequestError.invalidParams({ sessionId: id }, "The session is not open.");
    return session;
  };
  const open = (editor: AgentContext, id: string, from: Conversation | null): Session => {
    sessions.get(id)?.end();
    const session = new Session(client, editor, id, from);
    sessions.set(id, session);
    return session;
  };

  return agent({ name: "bedrock" })
    .onConnect(({ signal }) => {
      signal.addEventListener("abort", () => {
        for (const session of sessions.values()) session.end();
        sessions.clear();
      });
    })
    .onRequest("initialize", () => CAPABILITIES)
    .onRequest("authenticate", () => ({}))
    .onRequest("session/new", async ({ params: { cwd }, client: editor }) => {
      const json = { id: newId(), cwd };
      const made = await asked(client.persist((routes) => routes.conversations.$post({ json })));
      const session = open(editor, made.id, made as Conversation);
      session.resume(await loaded(client, made.id));
      return { sessionId: made.id, modes: modesOf(made as Conversation) };
    })
    .onRequest("session/load", async ({ params: { sessionId }, client: editor }) => {
      const session = open(editor, sessionId, null);
      const model = await whole(client, await loaded(client, sessionId));
      await session.show(model);
      return { modes: modesOf(model.conversation) };
    })
    .onRequest("session/resume", async ({ params: { sessionId }, client: editor }) => {
      const session = open(editor, sessionId, null);
      const model = await loaded(client, sessionId);
      session.resume(model);
      return { modes: modesOf(model.conversation) };
    })
    .onRequest("session/list", async ({ params: { cwd } }) => {
      const all = await asked(allConversations(client.call, "false"));
      const sessions = all
        .filter((conversation) => cwd == null || conversation.cwd === cwd)
        .map(({ id: sessionId, cwd, title, updatedAt }) => ({ sessionId, cwd, title, updatedAt }));
      return { sessions };
    })
    .onRequest("session/prompt", ({ params: { sessionId, prompt } }) =>
      sessionOf(sessionId).prompt(promptOf(prompt)),
    )
    .onNotification("session/cancel", async ({ params: { sessionId } }) => {
      await sessions.get(sessionId)?.cancel();
    })
    .onRequest("session/set_mode", async ({ params: { sessionId, modeId } }) => {
      if (modeId !== "restricted")
        throw RequestError.invalidParams(
          { modeId },
          "Only an approval leads out of Restricted mode: the agent asks for it when it needs it.",
        );
      const json = { mode: "restricted" } as const;
      await asked(
        client.call((routes) => routes.conversations[":id"].mode.$post({ param: { id: sessionId }, json })),
      );
      return {};
    })
    .onRequest("session/close", ({ params: { sessionId } }) => {
      sessions.get(sessionId)?.end();
      sessions.delete(sessionId);
      return {};
    })
    .onRequest("session/delete", async ({ params: { sessionId } }) => {
      sessions.get(sessionId)?.end();
      sessions.delete(sessionId);
      await asked(client.call((routes) => routes.conversations[":id"].$delete({ param: { id: sessionId } })));
      return {};
    });
}

const modesOf = ({ mode, sandbox }: Conversation): SessionModeState => ({
  currentModeId: mode,
  availableModes: sandbox.kind === "available" ? MODES : MODES.filter(({ id }) => id === "unrestricted"),
});

/** The server's own sentence for the person. */
async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refused && error.problem.status < 500)
      throw RequestError.invalidParams({ code: error.problem.code }, error.message);
    throw RequestError.internalError(undefined, (error as Error).message);
  }
}

/** The conversation, when everything that was missed has arrived. */
function loaded({ models }: Client, id: string): Promise<LoadedConversation> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const model = models.conversation(id);
      if (models.link.kind === "unauthorized") {
        unsubscribe();
        reject(RequestError.authRequired(undefined, "Set BEDROCK_TOKEN or BEDROCK_TOKEN_FILE."));
      } else if (model.kind === "gone") {
        unsubscribe();
        reject(RequestError.resourceNotFound(id));
      } else if (model.kind === "loaded" && model.isSynced) {
        unsubscribe();
        resolve(model);
      }
    };
    const unsubscribe = models.subscribe(look);
    look();
  });
}

/** With the messages before those that a client has at first. */
async function whole(client: Client, model: LoadedConversation): Promise<LoadedConversation> {
  const { id } = model.conversation;
  let current = model;
  while (current.hasEarlier) {
    const query = { before: String(current.messages[0]?.sequence ?? 1), limit: String(PAGE) };
    const page = await asked(
      client.call((routes) => routes.conversations[":id"].messages.$get({ param: { id }, query })),
    );
    const messages = page.messages as readonly Message[];
    const input = { name: "earlier.loaded", data: { messages } } as const;
    client.models.apply({ kind: "conversation_input", id, input, now: Date.now() });
    const next = client.models.conversation(id);
    if (next.kind !== "loaded" || next.messages.length === current.messages.length) return current;
    current = next;
  }
  return current;
}
