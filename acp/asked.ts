/** Owns: what the server refuses, as an error of the protocol. */
import { RequestError } from "@agentclientprotocol/sdk";
import { Refused } from "../client/index.ts";

/** With the server's own sentence for the person. */
export async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refused && error.problem.status < 500)
      throw RequestError.invalidParams({ code: error.problem.code }, error.message);
    throw RequestError.internalError(undefined, (error as Error).message);
  }
}
