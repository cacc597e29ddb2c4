/** Owns: writing a message: text, images, whether it steers the run or follows it; sending, and Stop. */
import {
  memo,
  useEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
} from "react";
import { newId, type Conversation } from "../client/index.ts";
import { phaseOf } from "../client/phase.ts";
import { readImages, readText, writeImages, writeText, type Delivery, type DraftImage } from "./drafts.ts";
import { isTouch } from "./focus.ts";
import { ACCEPTED, chooseImages, Thumbnails } from "./images.tsx";
import { drop, send, type Sending } from "./outbox.ts";
import { QueueView } from "./queue-view.tsx";
import type { Stopping } from "./run-control.ts";
import { useSession } from "./session.tsx";
import { StopButton } from "./stop-button.tsx";
import { useLink } from "./use-models.ts";

/** It is not drawn for text that streams. */
export const Composer = memo(function Composer({
  conversation,
  stopping,
}: {
  readonly conversation: Conversation;
  readonly stopping: Stopping;
}) {
  const session = useSession();
  const link = useLink();
  const { id, state } = conversation;
  // The text is the element's own: a key should not wait for a drawing of all that is around it.
  const field = useRef<HTMLTextAreaElement>(null);
  const [draft] = useState(() => readText(id));
  const [hasText, setHasText] = useState(isText(draft));
  const [images, setImages] = useState<readonly DraftImage[]>([]);
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [delivery, setDelivery] = useState<Delivery>("steer");
  const [isDropping, setDropping] = useState(false);
  const files = useRef<HTMLInputElement>(null);
  const isBusy = ["works", "waits"].includes(phaseOf(state));
  const canSend = hasText || images.length > 0;

  useEffect(() => {
    void readImages(id).then((kept) => setImages((added) => [...kept, ...added]));
  }, [id]);

  const textOf = () => field.current?.value ?? "";
  const keepText = () => {
    const text = textOf();
    setHasText(isText(text));
    writeText(id, text);
  };
  const changeText = (next: string) => {
    if (field.current !== null) field.current.value = next;
    keepText();
  };
  const changeImages = (next: readonly DraftImage[]) => {
    setImages(next);
    writeImages(id, next);
  };
  const add = (given: Iterable<File>) => {
    const chosen = chooseImages(given);
    setProblems(chosen.problems);
    if (chosen.images.length > 0) changeImages([...images, ...chosen.images]);
  };
  const edit = (message: Sending) => {
    changeText([message.text, textOf()].filter((part) => part !== "").join("\n\n"));
    changeImages([...message.images, ...images]);
    drop(id, message.id);
  };
  const submit = () => {
    if (!canSend) return;
    // A steer to a conversation at rest starts a run: it is never refused because the state has just changed.
    void send(session, id, { id: newId(), text: textOf(), images, delivery: isBusy ? delivery : "steer" });
    changeText("");
    changeImages([]);
    setProblems([]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // On a touch screen Enter makes a new line, for there is no Shift.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing || isTouch()) return;
    event.preventDefault();
    // A key that is held down was meant for what had the focus before.
    if (!event.repeat) submit();
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    add(event.dataTransfer.files);
  };

  return (
    <div
      className="box"
      data-dropping={isDropping}
      onDragOver={(event) => {
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={onDrop}
    >
      <QueueView conversation={conversation} onEdit={edit} />
      <Thumbnails
        images={images}
        onRemove={(image) => changeImages(images.filter((other) => other !== image))}
      />
      {problems.map((problem) => (
        <p key={problem} className="problem bad" role="alert">
          {problem}
        </p>
      ))}
      <textarea
        id="composer"
        rows={2}
        aria-label="Message"
        placeholder={placeholderFor(conversation)}
        ref={field}
        defaultValue={draft}
        onInput={keepText}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      <div className="tools">
        <input
          ref={files}
          type="file"
          hidden
          multiple
          accept={ACCEPTED}
          onChange={(event) => {
            add(event.target.files ?? []);
            event.target.value = "";
          }}
        />
        <button aria-label="Add images" title="Add images" onClick={() => files.current?.click()}>
          +
        </button>
        {isBusy && (
          <div className="seg" role="group" aria-label="When the agent reads it">
            <button
              aria-pressed={delivery === "steer"}
              onClick={() => setDelivery("steer")}
              title="With its next request"
            >
              Steer
            </button>
            <button
              aria-pressed={delivery === "followUp"}
              onClick={() => setDelivery("followUp")}
              title="When this run has ended"
            >
              Afterwards
            </button>
          </div>
        )}
        <div className="ends">
          <StopButton stopping={stopping} />
          <button className="primary" disabled={!canSend} onClick={submit}>
            Send <kbd>↵</kbd>
          </button>
        </div>
      </div>
      {stopping.isStopping && link.kind === "lost" && (
        <p className="problem warn" role="status">
          The server cannot be reached. Stop is sent as soon as it can.
        </p>
      )}
    </div>
  );
});

const isText = (text: string): boolean => text.trim() !== "";

function placeholderFor(conversation: Conversation): string {
  switch (phaseOf(conversation.state)) {
    case "waits":
      return "The agent waits for your decision. Write to steer it.";
    case "works":
      return "Write to steer the agent, or for afterwards.";
    case "failed":
      return "Write to go on.";
    case "rests":
    case "ended":
      return conversation.lastEvent <= 1 ? "What shall the agent do?" : "Write a message.";
  }
}
