import { type Logger, pino } from 'pino';
import type { Config } from '../config.ts';

export function createLogger(config: Config, process: string): Logger {
  return pino({ level: config.LOG_LEVEL, base: { process } });
}
