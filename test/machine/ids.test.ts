/** Ids, times and jitter: derived from the stamp alone, valid, different. */
import { describe, expect, test } from "vitest";
import { idAt, jitterOf, timestamp } from "../../machine/ids.ts";
import { stamp } from "./support.ts";

const SEED = "01234567-89ab-4cde-8f01-23456789abcd";
const AT = 0x0123456789ab;

describe("ids", () => {
  test("are UUIDv7: time, version, counter, variant, the seed's random bits", () => {
    expect(idAt({ at: AT, seed: SEED }, 0)).toBe("01234567-89ab-7000-9f01-0123456789ab");
    expect(idAt({ at: AT, seed: SEED }, 0x1f)).toBe("01234567-89ab-701f-9f01-0123456789ab");
    expect(idAt({ at: AT + 0.9, seed: SEED }, 0)).toBe(idAt({ at: AT, seed: SEED }, 0));
  });

  test("pad the time and the counter", () => {
    expect(idAt({ at: 1, seed: SEED }, 1)).toBe("00000000-0001-7001-9f01-0123456789ab");
  });

  test("have one of the four variants, by the seed's last digit", () => {
    const variantOf = (digit: string): string | undefined =>
      idAt({ at: AT, seed: `${SEED.slice(0, -1)}${digit}` }, 0)[19];
    expect(Array.from("0123456789abcdef", variantOf).join("")).toBe("89ab89ab89ab89ab");
  });

  test("of one stamp are different and ascending; the counter has 12 bits", () => {
    const ids = Array.from({ length: 0x1000 }, (_, n) => idAt({ at: AT, seed: SEED }, n));
    expect(new Set(ids).size).toBe(0x1000);
    expect([...ids].sort()).toEqual(ids);
    expect(idAt({ at: AT, seed: SEED }, 0x1000)).toBe(ids[0]);
  });

  test("of different stamps are different", () => {
    expect(idAt(stamp(1), 0)).not.toBe(idAt(stamp(2), 0));
    expect(idAt({ at: AT, seed: SEED }, 0)).not.toBe(
      idAt({ at: AT, seed: SEED.replace("01234567", "11234567") }, 0),
    );
  });
});

test("jitter is the seed's first 32 bits, from 0 to below 1", () => {
  const jitter = (head: string): number => jitterOf({ at: 0, seed: `${head}${SEED.slice(8)}` });
  expect([jitter("00000000"), jitter("40000000"), jitter("80000000")]).toEqual([0, 0.25, 0.5]);
  expect(jitter("ffffffff")).toBeLessThan(1);
});

test("times are RFC 3339 UTC with milliseconds", () => {
  expect(timestamp(Date.UTC(2025, 0, 2, 3, 4, 5, 6))).toBe("2025-01-02T03:04:05.006Z");
});
