/** Owns: the names of the NOTIFY channels. `commit_batches` names the first one too. */
export const COMMITS = "bedrock_commits";
export const LIVE = "bedrock_live";
