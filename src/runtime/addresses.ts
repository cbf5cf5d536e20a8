/** Where Capstan says that it is found. */
import type { Config } from '../config.ts';

/** Where this process listens, as far as its settings say. */
export function listeningUrlOf({ HOST, PORT }: Config): string {
  return `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`;
}

/** The API as clients see it. @param listening where it listens, once that is known */
export function publicUrlOf(config: Config, listening = listeningUrlOf(config)): string {
  return config.PUBLIC_URL ?? listening;
}

export function consoleUrlOf({ CONSOLE_URL }: Config, publicUrl: string): string {
  return CONSOLE_URL ?? `${publicUrl}/ui/`;
}
