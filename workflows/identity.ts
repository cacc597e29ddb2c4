/** Owns: what of a conversation is fixed once its row is loaded, and what hangs on it. */
import type { Fixed, Loaded } from "../activities/contract.ts";
import type { Context } from "../machine/context.ts";
import type { Profile } from "../machine/profile.ts";
import { SubAgents } from "./sub-agents.ts";
import { Visibility } from "./visibility.ts";

export type Identity = Fixed & { readonly visibility: Visibility; readonly subAgents: SubAgents };

export function identityOf({ profile, context, subAgentContext }: Fixed): Identity {
  return {
    profile,
    context,
    subAgentContext,
    visibility: new Visibility(profile),
    subAgents: new SubAgents({ profile, subAgentContext }),
  };
}

/** A first run whose context is known looks for no row: if there is one, its first commit is a fork. */
export const unasked = (profile: Profile, context: Context): Loaded => ({
  profile,
  context,
  subAgentContext: context,
  stored: null,
});
