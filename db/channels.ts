/** Owns: the names of the NOTIFY channels. The SQL function `commit_revisions` contains the first one, too. */
export const COMMITS = "bedrock_commits";
export const LIVE = "bedrock_live";
export const ORDERS = "bedrock_orders";

export type Channel = typeof COMMITS | typeof LIVE | typeof ORDERS;
