/** Owns: the names by which operators find conversations: the namespace must have them, workflows set them. */

/** Name to the API's number of its type: 2 is Keyword. */
export const SEARCH_ATTRIBUTES = { status: 2, mode: 2, parent: 2 } as const satisfies Record<string, 2>;
