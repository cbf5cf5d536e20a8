/** Runs ffmpeg or ffprobe: arguments as a list, never a shell; killed when the signal aborts. */
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { MediaTools } from './locate.ts';

/** Enough for the report of a filter; older output is dropped. */
const keptCharacters = 64 * 1024;

function describeExit(tool: string, code: number | null, stderr: string): Error {
  const tail = stderr.trim().split('\n').slice(-5).join(' ').slice(-600);
  return new Error(`${basename(tool)} exited with ${code}: ${tail}`);
}

/** Settles when the process is gone, so that nothing writes to a folder that is being removed. */
function run(
  tool: string,
  args: readonly string[],
  { signal, onStdout = () => undefined }: { signal: AbortSignal; onStdout?: (text: string) => void },
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const printed = { stdout: '', stderr: '' };
    let fault: Error | undefined;
    const child = spawn(tool, args, { signal, killSignal: 'SIGKILL', stdio: ['ignore', 'pipe', 'pipe'] });
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        printed[name] = (printed[name] + text).slice(-keptCharacters);
        if (name === 'stdout') onStdout(text);
      });
    }
    child.once('error', (error) => {
      fault = error;
    });
    child.once('close', (code) => {
      if (code === 0) resolve(printed);
      else reject(fault ?? describeExit(tool, code, printed.stderr));
    });
  });
}

/**
 * Options before a file that came from outside: containers that hold their own data only. A playlist would make
 * ffmpeg open whatever addresses it names.
 */
const untrusted = [
  '-protocol_whitelist',
  'file',
  '-format_whitelist',
  'mov,matroska,webm,avi,mpegts,mpeg,flv,ogg,wav,mp3,flac,aac,image2,png_pipe,jpeg_pipe',
];

export function inputFile(path: string, options: readonly string[] = []): readonly string[] {
  return [...untrusted, ...options, '-i', path];
}

const common = ['-hide_banner', '-nostdin', '-nostats', '-y', '-threads', '2'];

/** @returns what ffmpeg printed on stderr @throws Error with the end of it */
export async function runFfmpeg(
  tools: MediaTools,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  return (await run(tools.ffmpeg, [...common, ...args], { signal })).stderr;
}

export interface EncodingWatch {
  readonly signal: AbortSignal;
  /** Called twice a second with the finished seconds of the result. */
  readonly onSeconds: (seconds: number) => void;
}

/** As `runFfmpeg`, of what takes long. */
export async function runWatchedFfmpeg(
  tools: MediaTools,
  args: readonly string[],
  { signal, onSeconds }: EncodingWatch,
): Promise<string> {
  const onStdout = (text: string): void => {
    const last = [...text.matchAll(/^out_time_us=(\d+)$/gm)].at(-1)?.[1];
    if (last !== undefined) onSeconds(Number(last) / 1_000_000);
  };
  const report = ['-progress', 'pipe:1'];
  return (await run(tools.ffmpeg, [...common, ...report, ...args], { signal, onStdout })).stderr;
}

/** @returns what ffprobe printed, parsed */
export async function runFfprobe(tools: MediaTools, path: string, signal: AbortSignal): Promise<unknown> {
  const args = ['-v', 'error', '-print_format', 'json', '-show_format', '-show_streams', ...inputFile(path)];
  return JSON.parse((await run(tools.ffprobe, args, { signal })).stdout);
}
