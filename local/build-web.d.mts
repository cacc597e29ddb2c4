export declare function buildPage(say: (line: string) => void): Promise<string | null>;
