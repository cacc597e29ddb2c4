export declare const SECRETS: readonly string[];
