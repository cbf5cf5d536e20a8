/** Limits of the HTTP surface: enforced here, shown at /v1/limits. */

import type { Config } from '../config.ts';
import { mostValues } from '../contracts/bounds.ts';
import type { JsonLimits } from '../core/json-scan.ts';
import type { BodySize } from './body-kind.ts';
import type { RateConfig } from './rate-limits.ts';

export type ApiConfig = RateConfig &
  Pick<
    Config,
    | 'BODIES_BYTES'
    | 'BODY_LIMIT_BYTES'
    | 'DEFINITION_LIMIT_BYTES'
    | 'MEDIA_LIMIT_BYTES'
    | 'OPEN_RUNS_PER_PROJECT'
    | 'PUBLIC_URL'
    | 'TEMPORAL_UI_URL'
  >;

export interface BodyLimits extends JsonLimits {
  readonly bytes: number;
}

const stringBytes = 262_144;

export function bodyLimits(config: ApiConfig, size: BodySize): BodyLimits {
  const wide = { depth: 100, keys: mostValues, values: mostValues, stringBytes };
  switch (size) {
    case 'small':
      return { bytes: 4_096, depth: 8, keys: 32, values: 64, stringBytes: 4_096 };
    case 'request':
      return { bytes: config.BODY_LIMIT_BYTES, depth: 64, keys: 1_000, values: 10_000, stringBytes };
    case 'data':
      return { bytes: config.BODY_LIMIT_BYTES, ...wide };
    case 'definition':
      return { bytes: config.DEFINITION_LIMIT_BYTES, ...wide };
  }
}

export const httpLimits = {
  /** The time that a JSON or YAML body may take as a whole. */
  bodyTimeoutMs: 30_000,
  /** Between two pieces of a media file. */
  mediaIdleMs: 60_000,
  /** How long a connection may stay on which nothing moves while a request is handled. */
  idleMs: 120_000,
  keepAliveMs: 65_000,
  headerBytes: 16_384,
  connections: 2_000,
  /** Longest `Prefer: wait`. */
  waitSeconds: 60,
  eventCommentMs: 15_000,
} as const;
