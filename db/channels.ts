/** Owns: the names of the NOTIFY channels. `commit_revisions` names the first one too. */
export const COMMITS = "bedrock_commits";
export const LIVE = "bedrock_live";
