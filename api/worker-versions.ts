/**
 * Owns: what Worker Versioning means for the API (docs/operations.md, "Upgrade without losing a turn"): whether the
 * version that new conversations get has workers, and what becomes of a conversation whose version has none any more.
 */
import type { Client } from "@temporalio/client";

/** A version as Temporal's command line names it, `deployment:build`; null: without Worker Versioning. */
type Version = string | null;

type Queue = { readonly namespace: string; readonly taskQueue: string };

/** Milliseconds. The server sees a polling worker at least once a minute. */
const POLLER_FRESH_MS = 75_000;

/** temporal.api.enums.v1.VersioningBehavior, which no package exports. */
const PINNED = 1;

type Pollers = {
  /** What new conversations get. */
  readonly current: Version;
  /** Those whose workers poll for conversations, or did a minute ago. */
  readonly polled: ReadonlySet<Version>;
};

async function pollersOf(client: Client, { namespace, taskQueue }: Queue): Promise<Pollers> {
  const { pollers, versioningInfo } = await client.workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
  });
  const since = (Date.now() - POLLER_FRESH_MS) / 1_000;
  const fresh = pollers.filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) > since);
  return {
    current: nameOf(versioningInfo?.currentDeploymentVersion),
    polled: new Set(fresh.map(({ deploymentOptions }) => nameOf(deploymentOptions))),
  };
}

/** Why new conversations have no worker; null: they have one. Rejects when Temporal does not answer. */
export async function whyNoWorker(client: Client, queue: Queue): Promise<string | null> {
  const { current, polled } = await pollersOf(client, queue);
  if (polled.has(current)) return null;
  const others = [...polled].map(said);
  if (current === null)
    return others.length === 0
      ? "no worker serves conversations"
      : `no version of the workers is current; there are workers of ${others.join(" and ")} (temporal worker deployment set-current-version)`;
  const none = `no worker of the current version, ${current}, serves conversations`;
  return others.length === 0 ? none : `${none}; there are workers of ${others.join(" and ")}`;
}

/**
 * Terminates the run of a conversation that is pinned to a version without workers, and of its sub-agents. Nothing else
 * could go on with it. The next run begins from the row, with the current version.
 */
export async function endAbandoned(client: Client, queue: Queue, conversationId: string): Promise<void> {
  const { runId, raw } = await client.workflow.getHandle(conversationId).describe();
  const { versioningInfo } = raw.workflowExecutionInfo ?? {};
  const version = nameOf(versioningInfo?.deploymentVersion);
  // A run without a version, or that has not begun, goes on with the current one. An override is an operator's.
  const isPinned = Number(versioningInfo?.behavior) === PINNED && versioningInfo?.versioningOverride == null;
  if (version === null || !isPinned) return;
  if ((await pollersOf(client, queue)).polled.has(version)) return;
  // First, so that the conversation ends them from their rows.
  const subAgents = `ParentWorkflowId = "${conversationId}" AND ExecutionStatus = "Running"`;
  for await (const { workflowId } of client.workflow.list({ query: subAgents }))
    await endAbandoned(client, queue, workflowId).catch(() => undefined);
  await client.workflow
    .getHandle(conversationId, runId)
    .terminate(`No worker of ${version} serves it any more.`);
}

type Parts = { readonly deploymentName?: string | null; readonly buildId?: string | null };

const nameOf = (version: Parts | null | undefined): Version =>
  version?.deploymentName ? `${version.deploymentName}:${version.buildId ?? ""}` : null;

const said = (version: Version): string => version ?? "no version";
