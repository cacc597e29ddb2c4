/** Owns: what a conversation has spent, and the warning when that, or what all have spent today, comes near a limit. */
import { useEffect, useRef, useState } from "react";
import type { Conversation } from "../client/index.ts";
import { costInWords, limitInWords, nearLimit, spentInWords } from "../client/spending.ts";
import { useSession } from "./session.tsx";

/** In the state line. A sub-agent has none: what it spends counts with its parent. */
export function Cost({ conversation: { spent } }: { readonly conversation: Conversation }) {
  if (spent === null) return null;
  return (
    <span className="cost" title={`${spentInWords(spent)}, with its sub-agents`}>
      {costInWords(spent)}
    </span>
  );
}

type Report = Awaited<ReturnType<typeof readReport>>;

const readReport = (session: ReturnType<typeof useSession>) =>
  session.call((routes) => routes.spending.$get());

/** Milliseconds between two reads, however fast the agent works. */
const BETWEEN_READS = 5_000;

/** The limits and the day's sum; read again after more was spent, if there is a limit. null: not yet known. */
function useReport(tokens: number): Report | null {
  const session = useSession();
  const [report, setReport] = useState<Report | null>(null);
  const readAt = useRef(-Infinity);
  const hasLimits =
    report === null ||
    limitInWords(report.day.limit) !== null ||
    limitInWords(report.conversation.limit) !== null;
  useEffect(() => {
    if (!hasLimits) return;
    let isOver = false;
    const read = () =>
      readReport(session).then(
        (read) => {
          readAt.current = performance.now();
          if (!isOver) setReport(read);
        },
        // The next answer of the agent is another occasion.
        () => undefined,
      );
    const wait = readAt.current + BETWEEN_READS - performance.now();
    const timer = setTimeout(() => void read(), Math.max(0, wait));
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [session, tokens, hasLimits]);
  return report;
}

export function SpendingWarning({ conversation: { spent } }: { readonly conversation: Conversation }) {
  return spent === null ? null : <Warning spent={spent} />;
}

function Warning({ spent }: { readonly spent: NonNullable<Conversation["spent"]> }) {
  const report = useReport(spent.tokens);
  if (report === null) return null;
  const own = nearLimit(spent, report.conversation.limit);
  const day = nearLimit(report.day.spent, report.day.limit);
  if (own === null && day === null) return null;
  return (
    <div className="banner warn" role="status">
      <span>
        {own === null
          ? `All conversations together have spent ${day ?? ""} today. At the limit the agent stops, until 00:00 UTC.`
          : `This conversation has spent ${own}. At the limit the agent stops.`}
      </span>
    </div>
  );
}
