/** What the page promises. */
export interface RunMeasure {
  readonly steps: number;
  /** From the address to the first node that is drawn. */
  readonly first_picture_ms: number;
  /** While its events come in. */
  readonly frames_per_second: number;
}

export interface ConsoleResult {
  /** Compressed, as it is sent. */
  readonly first_load_bytes: number;
  readonly live: RunMeasure;
  readonly large: RunMeasure;
}

export const bars = {
  firstLoadBytes: 150_000,
  live: { steps: 2_000, firstPictureMs: 1_000, framesPerSecond: 30 },
  /** Usable: it is drawn, and moves. */
  large: { steps: 10_000, firstPictureMs: 5_000, framesPerSecond: 10 },
} as const;

function missedOf(
  name: string,
  measured: RunMeasure,
  bar: { readonly firstPictureMs: number; readonly framesPerSecond: number },
): string[] {
  const missed: string[] = [];
  if (measured.first_picture_ms > bar.firstPictureMs) {
    missed.push(
      `${name}: first picture after ${measured.first_picture_ms} ms, at most ${bar.firstPictureMs}`,
    );
  }
  if (measured.frames_per_second < bar.framesPerSecond) {
    missed.push(`${name}: ${measured.frames_per_second} frames/s, at least ${bar.framesPerSecond}`);
  }
  return missed;
}

export function missedBars({ first_load_bytes, live, large }: ConsoleResult): string[] {
  const tooHeavy =
    first_load_bytes > bars.firstLoadBytes
      ? [`first load: ${first_load_bytes} bytes, at most ${bars.firstLoadBytes}`]
      : [];
  return [...tooHeavy, ...missedOf('live', live, bars.live), ...missedOf('large', large, bars.large)];
}
