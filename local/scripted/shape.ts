/**
 * Owns: small checks of JSON values that compose, and the sentences in which the API complains about a shape. A check
 * returns the first defect, with the path to it, or null.
 * Not here: which fields a request has (request-shape.ts).
 */
import type { Json, JsonObject } from "./messages.ts";

export type Shape = (value: Json, path: string) => string | null;

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const at = (path: string, key: string | number): string => (path === "" ? String(key) : `${path}.${key}`);

export const anything: Shape = () => null;

export const string: Shape = (value, path) =>
  typeof value === "string" ? null : `${path}: Input should be a valid string`;

export const boolean: Shape = (value, path) =>
  typeof value === "boolean" ? null : `${path}: Input should be a valid boolean`;

/** Any JSON object, its fields unseen. */
export const dictionary: Shape = (value, path) =>
  isObject(value) ? null : `${path}: Input should be a valid dictionary`;

export function integer(least: number): Shape {
  return (value, path) => {
    if (!Number.isInteger(value)) return `${path}: Input should be a valid integer`;
    return Number(value) >= least ? null : `${path}: Input should be greater than or equal to ${least}`;
  };
}

export function matching(pattern: RegExp): Shape {
  return (value, path) => {
    if (typeof value !== "string") return `${path}: Input should be a valid string`;
    return pattern.test(value) ? null : `${path}: String should match pattern '${pattern.source}'`;
  };
}

/** A string of 1 to `longest` characters. */
export function name(longest: number): Shape {
  return (value, path) => {
    if (typeof value !== "string") return `${path}: Input should be a valid string`;
    if (value === "") return `${path}: String should have at least 1 character`;
    return value.length <= longest ? null : `${path}: String should have at most ${longest} characters`;
  };
}

export function oneOf(...values: readonly string[]): Shape {
  const quoted = values.map((value) => `'${value}'`);
  const choice =
    quoted.length === 1
      ? quoted.join("")
      : `${quoted.slice(0, -1).join(", ")} or ${quoted.slice(-1).join("")}`;
  return (value, path) =>
    typeof value === "string" && values.includes(value) ? null : `${path}: Input should be ${choice}`;
}

export const nullable =
  (shape: Shape): Shape =>
  (value, path) =>
    value === null ? null : shape(value, path);

export const stringOr =
  (shape: Shape): Shape =>
  (value, path) =>
    typeof value === "string" ? null : shape(value, path);

export function arrayOf(shape: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path}: Input should be a valid list`;
    return firstOf(value.entries(), ([index, element]: [number, Json]) => shape(element, at(path, index)));
  };
}

type Fields = { readonly [name: string]: Shape };

/** An object with these fields and no others. */
export function object(required: Fields, optional: Fields = {}): Shape {
  return (value, path) => {
    if (!isObject(value)) return `${path}: Input should be a valid dictionary`;
    for (const name of Object.keys(required)) {
      if (!Object.hasOwn(value, name)) return `${at(path, name)}: Field required`;
    }
    return firstOf(Object.entries(value), ([name, field]) => {
      const shape = ownField(required, name) ?? ownField(optional, name);
      return shape === undefined
        ? `${at(path, name)}: Extra inputs are not permitted`
        : shape(field, at(path, name));
    });
  };
}

/** An object whose shape depends on its `type`; the type is part of the path, as in the API's own messages. */
export function tagged(variants: { readonly [tag: string]: Shape }): Shape {
  const tags = Object.keys(variants)
    .map((tag) => `'${tag}'`)
    .join(", ");
  return (value, path) => {
    if (!isObject(value)) return `${path}: Input should be a valid dictionary`;
    const tag = value["type"];
    if (tag === undefined) return `${at(path, "type")}: Field required`;
    if (typeof tag !== "string") return `${at(path, "type")}: Input should be a valid string`;
    const shape = ownField(variants, tag);
    return shape === undefined
      ? `${path}: Input tag '${tag}' found using 'type' does not match any of the expected tags: ${tags}`
      : shape(value, at(path, tag));
  };
}

/** The first complaint about any of the items. */
export function firstOf<T>(items: Iterable<T>, complaint: (item: T) => string | null): string | null {
  for (const item of items) {
    const found = complaint(item);
    if (found !== null) return found;
  }
  return null;
}

function ownField(fields: Fields, name: string): Shape | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}
