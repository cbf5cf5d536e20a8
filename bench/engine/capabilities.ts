/** What the runs of this bench call. One process has them all, each at an address of its own. */
export interface BenchCapability {
  readonly name: string;
  /** Before it answers. */
  readonly waitMs: number;
  readonly rateUsd: number;
  readonly isDeterministic: boolean;
}

export const capabilities = {
  echo: { name: 'bench-echo', waitMs: 0, rateUsd: 0, isDeterministic: false },
  /** Apart from the first, so that the speed of one is no evidence for the other. */
  slow: { name: 'bench-slow', waitMs: 500, rateUsd: 0, isDeterministic: false },
  /** Its results may be kept; they cost something. */
  kept: { name: 'bench-kept', waitMs: 0, rateUsd: 0.001, isDeterministic: true },
} as const satisfies Record<string, BenchCapability>;

export type CapabilityKey = keyof typeof capabilities;
export const capabilityKeys = ['echo', 'slow', 'kept'] as const satisfies readonly CapabilityKey[];

/** Addresses of the capabilities. */
export type Endpoints = Readonly<Record<CapabilityKey, string>>;

export function costModelOf({ rateUsd }: BenchCapability) {
  return rateUsd === 0 ? { type: 'free', rate_usd: 0 } : { type: 'per_call', rate_usd: rateUsd };
}
