/** Owns: reading the values of options; a bad one is said with what would be good. */
import { InvalidArgumentError } from "commander";

export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError("It is a number of seconds above 0.");
  return value;
}

export function eventNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It is the number of an event, from 0 on.");
  return Number(text);
}

export const collected = (value: string, before: readonly string[]): readonly string[] => [...before, value];
