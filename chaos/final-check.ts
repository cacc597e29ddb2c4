/** Owns: the final check of a run, in this order: the virtual users, the events that they received, the replays. */
import { openDatabase } from "../db/connect.ts";
import * as checks from "./checks.ts";
import { leftoversOf } from "./leftovers.ts";
import type { Places } from "./model.ts";
import type { Scene } from "./scene.ts";
import type { VirtualUser } from "./virtual-user.ts";

export type FinalCheck = {
  readonly complaints: readonly string[];
  /** Conversations that ran tools under both releases. */
  readonly carriedOver: number;
  /** How often a stream was cut off and resumed. */
  readonly resumed: number;
  /** How often one that resumed in the middle of an answer got its text from the beginning. */
  readonly rejoined: number;
};

export async function checkEverything(
  scene: Scene,
  users: readonly VirtualUser[],
  places: Places,
): Promise<FinalCheck> {
  const { product, others, restarts } = scene;
  const db = openDatabase(product.databaseUrl, { applicationName: "chaos", max: 4 });
  try {
    await Promise.all(
      users.map((user) =>
        user.sayLastWord().catch((error: unknown) => void user.complaints.push(String(error))),
      ),
    );
    await restarts.settled();
    const complaints = users.flatMap((user) => user.complaints);
    const chapters = users.flatMap((user) => user.chapters);
    for (const chapter of chapters) {
      complaints.push(...(await checks.checkAccepted(chapter)), ...(await checks.checkHeard(db, chapter)));
    }
    complaints.push(
      ...chapters.flatMap(({ talk }) => talk.live.complaints.map((each) => `${talk.id}: ${each}`)),
    );
    const rejoined = chapters.reduce((sum, { talk }) => sum + talk.live.rejoined, 0);
    const resumed = chapters.reduce((sum, { talk }) => sum + talk.resumed, 0);
    complaints.push(...(await checks.checkEvents(db)), ...(await checks.checkLedger(db, places.ledger)));
    complaints.push(...checks.checkRequests(product), ...(await leftoversOf(places.cwd)));
    // Restarted workers have no cached workflows, so they have to replay.
    await scene.replaceWorkers();
    const roots = [...others, ...chapters.map(({ talk }) => talk.id)];
    const everybody = await checks.checkEverybody(db, roots);
    const replayed = everybody.ids.map((id) => checks.checkReplay(scene, db, id));
    complaints.push(...everybody.complaints, ...(await Promise.all(replayed)).flat());
    const made = everybody.ids.filter((id) => !others.includes(id));
    const carriedOver = await checks.countCarriedOver(product, made);
    for (const { talk } of chapters) talk.close();
    return { complaints, carriedOver, resumed, rejoined };
  } finally {
    await db.close();
  }
}
