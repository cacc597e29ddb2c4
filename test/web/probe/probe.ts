/**
 * Owns: what the probe in a page offers: it sees what a person would see, frame by frame, and how long the page is busy.
 * The page has a DOM, tests and measurements have none.
 */

/** What is looked at: the text of a part of the page, its title, or the address of its icon. */
export type Place = "conversation" | "state" | "list" | "title" | "icon";

/** Times in milliseconds since the epoch, with fractions. */
export type Seen = {
  /** The last key or click before it; null: there was none since `expect`. */
  readonly inputAt: number | null;
  /** The first frame in which it could be seen was painted. */
  readonly paintedAt: number;
};

/** The text of a conversation, whenever it has changed. */
export type Sample = {
  /** When the page was opened, in milliseconds since the epoch: a reload makes another page. */
  readonly page: number;
  readonly text: string;
};

export type Probe = {
  /** Milliseconds of each task above 50 ms, since the last call. */
  longTasks(): readonly number[];
  /** Milliseconds from each keydown until its frame was painted, since the last call. */
  keydowns(): readonly number[];
  /** Looks for a text from the next frame on. */
  expect(place: Place, text: string): void;
  /** What became of the last `expect`. */
  seen(): Promise<Seen>;
  /** Follows the element that has this text in the conversation, frame by frame. */
  watch(text: string): void;
  /** Pixels from the top of the window to the element, at each frame since `watch`; null: it was not there. */
  tops(): readonly (number | null)[];
};
