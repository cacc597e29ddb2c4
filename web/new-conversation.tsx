/** Owns: starting a conversation: where, with which model, and the first message. */
import { useEffect, useId, useRef, useState } from "react";
import type { Conversation } from "../client/index.ts";
import { readImages, readText, writeImages, writeText, type DraftImage } from "./drafts.ts";
import { ACCEPTED, chooseImages, Thumbnails } from "./images.tsx";
import { MAIN } from "./focus.ts";
import { MissingSandbox } from "./missing-sandbox.tsx";
import { conversationRoute, navigate } from "./route.ts";
import { EXPLANATION, FIRST_TRIALS, TRIALS } from "./scripted-banner.tsx";
import { useSession } from "./session.tsx";
import { startConversation, type First } from "./start-conversation.ts";
import { sentenceOf } from "./toasts.tsx";
import { useList } from "./use-models.ts";

type Model = {
  readonly id: string;
  readonly name: string;
  readonly default: boolean;
  readonly scripted: boolean;
};

/** A host on which tools run. */
type Host = {
  readonly name: string;
  readonly default: boolean;
  /** null: nothing is known of it. */
  readonly sandbox: Conversation["sandbox"] | null;
};

const DIRECTORY = "bedrock.directory";
const DRAFT = "new";

export function NewConversation({ onOpenList }: { readonly onOpenList: () => void }) {
  const session = useSession();
  const { call } = session;
  const list = useList();
  const [directory, setDirectory] = useState(localStorage.getItem(DIRECTORY) ?? "");
  const [found, setFound] = useState<readonly string[]>([]);
  const [models, setModels] = useState<readonly Model[]>([]);
  const [model, setModel] = useState("");
  const [text, setText] = useState(() => readText(DRAFT));
  const [images, setImages] = useState<readonly DraftImage[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const options = useId();
  const field = useRef<HTMLInputElement>(null);
  const [hosts, setHosts] = useState<readonly Host[]>([]);
  const [host, setHost] = useState("");
  const sandbox =
    hosts.find(({ name, default: isDefault }) => (host === "" ? isDefault : name === host))?.sandbox ?? null;
  const isScripted = models.some((one) => one.default && one.scripted);
  const isFirst = models.length > 0 && list.isLoaded && list.conversations.size === 0;
  const trials = isScripted ? TRIALS : isFirst ? FIRST_TRIALS : [];

  useEffect(() => {
    call((routes) => routes.models.$get()).then(
      (answer) => setModels(answer.models),
      () => undefined,
    );
    call((routes) => routes.hosts.$get()).then(
      (answer) => setHosts(answer.hosts),
      () => undefined,
    );
  }, [call]);

  useEffect(() => {
    let isWanted = true;
    const query = { path: directory, host };
    call((routes) => routes.directories.$get({ query })).then(
      ({ directories }) => {
        if (!isWanted) return;
        setFound(directories);
        // Nothing was chosen yet, and nobody is about to choose: the place to begin in.
        const isInIt = document.activeElement === field.current;
        if (directory === "" && !isInIt && directories[0] !== undefined) setDirectory(directories[0]);
      },
      () => undefined,
    );
    return () => {
      isWanted = false;
    };
  }, [call, directory, host]);

  useEffect(() => {
    void readImages(DRAFT).then((kept) => setImages((added) => [...kept, ...added]));
  }, []);

  const changeText = (next: string) => {
    setText(next);
    writeText(DRAFT, next);
  };
  const changeImages = (next: readonly DraftImage[]) => {
    setImages(next);
    writeImages(DRAFT, next);
  };
  const add = (files: Iterable<File>) => {
    const chosen = chooseImages(files);
    changeImages([...images, ...chosen.images]);
    setProblem(chosen.problems[0] ?? null);
  };

  const start = async (first: First) => {
    setBusy(true);
    setProblem(null);
    try {
      const where = {
        cwd: directory,
        ...(host === "" ? {} : { host }),
        ...(model === "" ? {} : { model }),
      };
      const id = await startConversation(session, where, first);
      localStorage.setItem(DIRECTORY, directory);
      navigate(conversationRoute(id));
      return true;
    } catch (error) {
      setProblem(sentenceOf(error));
      setBusy(false);
      return false;
    }
  };
  const startWithDraft = async () => {
    if (isBusy || directory === "" || !(await start({ text, images }))) return;
    changeText("");
    changeImages([]);
  };

  const known = [...new Set([...list.conversations.values()].map(({ cwd }) => cwd))].slice(0, 8);
  return (
    <main id={MAIN} tabIndex={-1}>
      <div className="top">
        <button className="only-phone" aria-label="Show the list of conversations" onClick={onOpenList}>
          ☰
        </button>
        <h1>New conversation</h1>
      </div>
      <form
        className="new"
        data-focus-home="message"
        onSubmit={(event) => {
          event.preventDefault();
          void startWithDraft();
        }}
      >
        {trials.length > 0 && (
          <div className="banner" role="note">
            {isScripted && <span>{EXPLANATION}</span>}
            <span>Three things to try:</span>
            {trials.map((trial) => (
              <button
                key={trial.name}
                type="button"
                disabled={isBusy}
                onClick={() => void start({ text: trial.text, images: [] })}
              >
                {trial.name}
              </button>
            ))}
          </div>
        )}
        {hosts.length > 1 && (
          <>
            <label htmlFor="host">Host</label>
            <select id="host" value={host} onChange={(event) => setHost(event.target.value)}>
              {hosts.map(({ name, default: isDefault }) => (
                <option key={name} value={isDefault ? "" : name}>
                  {name}
                </option>
              ))}
            </select>
          </>
        )}
        <label htmlFor="directory">Directory</label>
        <input
          ref={field}
          id="directory"
          list={options}
          required
          autoComplete="off"
          spellCheck={false}
          value={directory}
          aria-describedby="directory-hint"
          onChange={(event) => setDirectory(event.target.value)}
        />
        <datalist id={options}>
          {[...new Set([...known, ...found])].map((path) => (
            <option key={path} value={path} />
          ))}
        </datalist>
        <p id="directory-hint" className="quiet">
          The agent works here.{" "}
          {sandbox?.kind === "available" &&
            "It begins in Restricted mode: it can read, and asks you before it changes anything."}
        </p>
        {sandbox !== null && <MissingSandbox sandbox={sandbox} />}
        {models.length > 1 && (
          <>
            <label htmlFor="model">Model</label>
            <select id="model" value={model} onChange={(event) => setModel(event.target.value)}>
              {models.map(({ id, name, default: isDefault }) => (
                <option key={id} value={isDefault ? "" : id}>
                  {name}
                </option>
              ))}
            </select>
          </>
        )}
        <label htmlFor="message">First message</label>
        <textarea
          id="message"
          rows={5}
          value={text}
          autoFocus
          onChange={(event) => changeText(event.target.value)}
          onPaste={(event) => {
            if (event.clipboardData.files.length > 0) {
              event.preventDefault();
              add(event.clipboardData.files);
            }
          }}
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault();
            add(event.dataTransfer.files);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void startWithDraft();
          }}
        />
        <Thumbnails
          images={images}
          onRemove={(image) => changeImages(images.filter((other) => other !== image))}
        />
        <p role="alert" className="bad">
          {problem}
        </p>
        <div className="row">
          <label className="button">
            Add images
            <input
              type="file"
              className="unseen"
              multiple
              accept={ACCEPTED}
              onChange={(event) => {
                add(event.target.files ?? []);
                event.target.value = "";
              }}
            />
          </label>
          <span className="space" />
          <button className="primary" type="submit" disabled={isBusy || directory === ""}>
            {isBusy ? "Starting …" : "Start"}
          </button>
        </div>
      </form>
    </main>
  );
}
