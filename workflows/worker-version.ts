/**
 * Owns: how a conversation comes to the current version of the workers (docs/operations.md, "Upgrade without losing a
 * turn"). A run stays with the version that it began with; the next run begins with the current one. Without Worker
 * Versioning nothing here has an effect.
 */
import { makeContinueAsNewFunc, type Workflow, workflowInfo } from "@temporalio/workflow";

/** Since this run began, another version has become current. The server says so with each workflow task. */
export const isAnotherVersionCurrent = (): boolean => workflowInfo().targetWorkerDeploymentVersionChanged;

/** By default the next run would stay with the version of this one. */
export function continueAsNew<F extends Workflow>(...args: Parameters<F>): Promise<never> {
  const isVersioned = workflowInfo().currentDeploymentVersion !== undefined;
  return makeContinueAsNewFunc<F>(isVersioned ? { initialVersioningBehavior: "AUTO_UPGRADE" } : {})(...args);
}
