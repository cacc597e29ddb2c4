/** Owns: saying that no language model answers, and three things to try. */
import { newId, type Conversation } from "../client/index.ts";
import { send } from "./outbox.ts";
import { useSession } from "./session.tsx";

export const TRIALS = [
  { name: "Look around", text: "run: ls -la && git status --short 2>/dev/null | head" },
  { name: "Write a file (asks you first)", text: "write: bedrock-hello.txt Hello from the agent." },
  { name: "Run something long, then stop it", text: "run: for i in $(seq 120); do echo $i; sleep 1; done" },
] as const;

/** The same for a language model. */
export const FIRST_TRIALS: readonly { readonly name: string; readonly text: string }[] = [
  { name: "Look around", text: "Have a look around in this directory, and tell me what it is about." },
  {
    name: "Write a file (asks you first)",
    text: "Write a file bedrock-hello.txt with a greeting in it.",
  },
  {
    name: "Run something long, then stop it",
    text: "Run this command: for i in $(seq 120); do echo $i; sleep 1; done",
  },
];

export const EXPLANATION =
  "No provider's key is set: a scripted model answers. It only follows a few commands, but its tools are real.";

export function ScriptedBanner({ conversation }: { readonly conversation: Conversation }) {
  const session = useSession();
  return (
    <div className="banner" role="note">
      <span>{EXPLANATION} Try:</span>
      {TRIALS.map(({ name, text }) => (
        <button
          key={name}
          onClick={() =>
            void send(session, conversation.id, { id: newId(), text, images: [], delivery: "steer" })
          }
        >
          {name}
        </button>
      ))}
    </div>
  );
}
