/** What the page promises, and what of it was missed. */

/** A run in the page. */
export interface RunMeasure {
  readonly steps: number;
  /** From the address to the first nodes on the screen, by a browser that has been on another page of the console before. */
  readonly first_picture_ms: number;
  /** Steps that ended while it was watched. */
  readonly steps_ended: number;
  /** As the browser drew them, which is also a matter of what else the machine does. */
  readonly frames_per_second: number;
  /** What the page's own thread computed for a frame. */
  readonly main_thread_ms_per_frame: number;
  /** The longest time that the page did not answer, while it was watched. */
  readonly longest_task_ms: number;
}

/** A user's work on it. */
export interface UseMeasure {
  /** Frames drawn while the graph is dragged and zoomed. */
  readonly frames_per_second: number;
  readonly longest_task_ms: number;
  /** From the press on a step to what is known of it. */
  readonly select_ms: number;
}

export interface MemoryMeasure {
  readonly frames: number;
  readonly before_mb: number;
  readonly after_mb: number;
}

export interface ConsoleResult {
  /** Compressed, as it is sent. */
  readonly first_load_bytes: number;
  readonly live: RunMeasure;
  readonly large: RunMeasure;
  readonly use: UseMeasure;
  readonly memory: MemoryMeasure;
}

export const bars = {
  firstLoadBytes: 150_000,
  live: { steps: 2_000, firstPictureMs: 1_000, framesPerSecond: 30 },
  /** Usable: it is drawn, moves, and answers. */
  large: { steps: 10_000, firstPictureMs: 5_000, framesPerSecond: 10 },
  use: { framesPerSecond: 20, selectMs: 1_000 },
  /** Of what was used before. */
  memoryGrowth: 0.2,
} as const;

interface Bar {
  readonly name: string;
  readonly seen: number;
  readonly allowed: number;
  readonly unit: string;
  readonly atLeast?: boolean;
}

function toBars({ first_load_bytes, live, large, use, memory }: ConsoleResult): Bar[] {
  const least = true;
  const { firstLoadBytes, memoryGrowth } = bars;
  return [
    { name: 'first load', seen: first_load_bytes, allowed: firstLoadBytes, unit: 'bytes' },
    {
      name: 'live: first picture',
      seen: live.first_picture_ms,
      allowed: bars.live.firstPictureMs,
      unit: 'ms',
    },
    {
      name: 'live',
      seen: live.frames_per_second,
      allowed: bars.live.framesPerSecond,
      unit: 'frames/s',
      atLeast: least,
    },
    {
      name: 'large: first picture',
      seen: large.first_picture_ms,
      allowed: bars.large.firstPictureMs,
      unit: 'ms',
    },
    {
      name: 'large',
      seen: large.frames_per_second,
      allowed: bars.large.framesPerSecond,
      unit: 'frames/s',
      atLeast: least,
    },
    {
      name: 'use',
      seen: use.frames_per_second,
      allowed: bars.use.framesPerSecond,
      unit: 'frames/s',
      atLeast: least,
    },
    { name: 'use: a step', seen: use.select_ms, allowed: bars.use.selectMs, unit: 'ms' },
    { name: 'memory', seen: memory.after_mb, allowed: memory.before_mb * (1 + memoryGrowth), unit: 'MB' },
  ];
}

export function missedBars(result: ConsoleResult): string[] {
  return toBars(result)
    .filter(({ seen, allowed, atLeast = false }) => (atLeast ? seen < allowed : seen > allowed))
    .map(({ name, seen, allowed, unit, atLeast = false }) => {
      return `${name}: ${seen} ${unit}, at ${atLeast ? 'least' : 'most'} ${Math.round(allowed * 10) / 10}`;
    });
}
