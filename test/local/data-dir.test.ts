import { expect, test } from "vitest";
import { dataFolders, makeFolders, takeDataLock, type DataFolders } from "../../local/data-dir.ts";
import { temporaryFolder } from "./support.ts";

function folders(): DataFolders {
  const made = dataFolders(temporaryFolder());
  makeFolders(made);
  return made;
}

const report = () => undefined;

test("data that another start uses are refused at once, with what to do", async () => {
  const data = folders();
  const lock = await takeDataLock(data, { report });
  await expect(takeDataLock(data, { report })).rejects.toThrow(
    `Another start (process ${process.pid}) uses ${data.dataDir} already. Stop it first, or set another DATA_DIR`,
  );
  lock.release();
});

test("a start waits for another one that is stopping, and reports that", async () => {
  const data = folders();
  const lock = await takeDataLock(data, { report });
  lock.announceRelease();
  const reports: string[] = [];
  const next = await takeDataLock(data, {
    report: (sentence) => {
      reports.push(sentence);
      lock.release();
    },
  });
  expect(reports).toEqual([`process ${process.pid} is stopping`]);
  next.release();
});

test("a start does not wait for ever for one that does not come to its end", async () => {
  const data = folders();
  const lock = await takeDataLock(data, { report });
  lock.announceRelease();
  await expect(takeDataLock(data, { report, within: 1 })).rejects.toThrow(
    `process ${process.pid}) is stopping, but has not ended`,
  );
  lock.release();
});

test("the wait ends when the start is interrupted", async () => {
  const data = folders();
  const lock = await takeDataLock(data, { report });
  lock.announceRelease();
  const interrupted = new AbortController();
  const reason = new Error("interrupted");
  const waiting = takeDataLock(data, { report: () => interrupted.abort(reason), signal: interrupted.signal });
  await expect(waiting).rejects.toBe(reason);
  lock.release();
});
