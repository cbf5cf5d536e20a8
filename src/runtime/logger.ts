import { type Logger, pino } from 'pino';
import type { Config } from '../config.ts';

/** @param fields of each line, besides what it says itself: where in a trace it was written */
export function createLogger(
  config: Pick<Config, 'LOG_LEVEL'>,
  process: string,
  fields: () => object = () => ({}),
): Logger {
  return pino({ level: config.LOG_LEVEL, base: { process }, mixin: fields });
}
