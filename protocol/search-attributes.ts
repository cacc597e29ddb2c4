/**
 * Owns: the search attributes by which operators find conversations. The namespace must have them; workflows set them.
 */

/**
 * Maps each name to the API's number of its type: 2 is Keyword, also for titles. A server on Postgres makes a tsvector
 * of a Text as it stands, refuses what is none (`run: ls`), and then shows nothing new of that workflow.
 */
export const SEARCH_ATTRIBUTES = { status: 2, mode: 2, parent: 2, title: 2 } as const satisfies Record<
  string,
  2
>;
