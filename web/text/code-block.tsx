/** Owns: a block of code: its language, its colours when they come, and a button that copies it. */
import {
  memo,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type ReactElement,
  type ReactNode,
  type RefObject,
} from "react";
import { ColoredCode, finishedColors, type ColoredPiece } from "./colored-code.ts";
import { colorClass } from "./colors.ts";
import { showHidden } from "./hidden-characters.tsx";
import { languageOf, type Language } from "./languages.ts";
import { partProps, unwrappedLines } from "./lazy-layout.ts";
import { useScrolls } from "./use-scrolls.ts";

/** Milliseconds that "Copied" is shown. */
const COPIED_MS = 2000;

/**
 * @param props.info what the model wrote after the fence
 * @param props.pieces the code (pieces.ts)
 */
export function CodeBlock({
  info,
  pieces,
}: {
  readonly info: string;
  readonly pieces: readonly string[];
}): ReactElement {
  const { language, title } = languageOf(info);
  const colored = useColors(language, pieces);
  const code = useRef<HTMLPreElement>(null);
  const scrolls = useScrolls(code, pieces);
  return (
    <div className="md-code">
      <div className="md-code-head">
        <span>{showHidden(title)}</span>
        <CopyButton pieces={pieces} code={code} />
      </div>
      <pre
        ref={code}
        {...(scrolls
          ? { tabIndex: 0, role: "group", "aria-label": `Code${title === "" ? "" : `, ${title}`}` }
          : {})}
      >
        <code>
          {pieces.map((text, at) => (
            <CodePiece key={at} text={text} count={pieces.length} colored={colored[at]} />
          ))}
        </code>
      </pre>
    </div>
  );
}

function useColors(language: Language | null, pieces: readonly string[]): readonly ColoredPiece[] {
  const [colored, setColored] = useState(() => finishedColors(language, pieces));
  const [code] = useState(() => new ColoredCode());
  // Not after the paint: the worker reads the code while the browser paints.
  useLayoutEffect(() => code.watch(setColored), [code]);
  useLayoutEffect(() => code.set(language, pieces), [code, language, pieces]);
  return colored;
}

type PieceProps = {
  readonly text: string;
  readonly count: number;
  readonly colored: ColoredPiece | undefined;
};

const CodePiece = memo(function CodePiece({ text, count, colored }: PieceProps): ReactElement {
  return (
    <span {...partProps("tx-piece", count, () => unwrappedLines(text))}>{coloredNodes(text, colored)}</span>
  );
});

/** The text, whatever the colours say. Those of a text that it begins with are good for its beginning. */
function coloredNodes(text: string, colored: ColoredPiece | undefined): ReactNode {
  if (colored === undefined || !text.startsWith(colored.text)) return showHidden(text);
  const nodes: ReactNode[] = [];
  let end = 0;
  for (let at = 0; at < colored.runs.length; at += 2) {
    const run = text.slice(end, end + (colored.runs[at] ?? 0));
    const className = colorClass(colored.runs[at + 1] ?? 0);
    nodes.push(
      className === undefined ? (
        showHidden(run)
      ) : (
        <span className={className} key={end}>
          {showHidden(run)}
        </span>
      ),
    );
    end += run.length;
  }
  nodes.push(showHidden(text.slice(end)));
  return nodes;
}

type CopyState = "ready" | "copied" | "selected";

function CopyButton({
  pieces,
  code,
}: {
  readonly pieces: readonly string[];
  readonly code: RefObject<HTMLElement | null>;
}): ReactElement {
  const [state, setState] = useState<CopyState>("ready");
  useEffect(() => {
    if (state === "ready") return;
    const timer = setTimeout(() => setState("ready"), COPIED_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(pieces.join(""));
      setState("copied");
    } catch {
      // A page without TLS has no clipboard, except on localhost. The person can copy what is selected.
      if (code.current !== null) getSelection()?.selectAllChildren(code.current);
      setState("selected");
    }
  };
  return (
    <button type="button" className="md-copy" onClick={() => void copy()} aria-label="Copy code">
      {state === "ready" ? (
        "Copy"
      ) : (
        <span role="status">{state === "copied" ? "Copied" : "Selected: press Ctrl C"}</span>
      )}
    </button>
  );
}
