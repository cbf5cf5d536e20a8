import { spawn } from 'node:child_process';

const openers: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Hands an address to the system's browser. Where there is none, nothing happens: the address was printed. */
export function openBrowser(url: string): void {
  const [command = 'xdg-open', ...words] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...words, url], { stdio: 'ignore', detached: true });
  child.once('error', () => undefined);
  child.unref();
}
