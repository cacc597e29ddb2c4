/** Owns: the simulation of a host without Landlock. */
import { underFilter } from "./seccomp.ts";

const ENOSYS = 38;

/** A command that puts itself under the filter and then executes the command that follows. */
export const withoutLandlock = (): readonly string[] => underFilter([["landlock_create_ruleset", ENOSYS]]);
