/**
 * Guarantees that a killed parent leaves no child behind, on Linux and macOS alike. Each supervisor has one small shell
 * that reads process groups from a pipe. When the parent dies, the pipe closes, and the shell ends the listed groups,
 * newest first. A shell runs from sources and compiled output alike, starts in milliseconds and needs one megabyte. It
 * has its own session, so that a signal to the parent's group or terminal does not reach it.
 */
import { type ChildProcess, spawn } from 'node:child_process';

const script = `
trap '' HUP INT TERM
groups=
while read -r verb subject signal; do
  rest=
  for entry in $groups; do [ "\${entry%:*}" = "$subject" ] || rest="$rest $entry"; done
  case $verb in
    add) groups="$subject:$signal$rest" ;;
    end) groups=$rest ;;
  esac
done
for entry in $groups; do kill -s "\${entry#*:}" -- "-\${entry%:*}"; done 2>/dev/null
tries=100
while [ -n "$groups" ] && [ "$tries" -gt 0 ]; do
  alive=
  for entry in $groups; do kill -s 0 -- "-\${entry%:*}" && alive=1; done 2>/dev/null
  [ -n "$alive" ] || break
  sleep 0.1
  tries=$((tries - 1))
done
for entry in $groups; do kill -s KILL -- "-\${entry%:*}"; done 2>/dev/null
[ -z "$1" ] || rm -rf -- "$1"
`;

export interface Watchdog {
  /** @param stopSignal signal that stops this group gracefully */
  readonly add: (processGroup: number, stopSignal: NodeJS.Signals) => void;
  readonly end: (processGroup: number) => void;
  /** Resolves when the shell has ended; it ends the listed groups first. */
  readonly close: () => Promise<void>;
}

/** @param temporaryFolder removed when the parent ends or calls `close`; null removes nothing */
export function startWatchdog(temporaryFolder: string | null): Watchdog {
  const listed = new Map<number, NodeJS.Signals>();
  let closed = false;
  let shell: ChildProcess;

  const write = (line: string): void => void shell.stdin?.write(`${line}\n`);
  const add = (group: number, signal: NodeJS.Signals): void => {
    listed.set(group, signal);
    write(`add ${group} ${signal.slice(3)}`);
  };
  const open = (): void => {
    shell = spawn('/bin/sh', ['-c', script, 'capstan-watchdog', temporaryFolder ?? ''], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    shell.stdin?.on('error', () => undefined);
    for (const [group, signal] of listed) add(group, signal);
    shell.once('exit', () => {
      if (!closed) open();
    });
  };
  open();

  return {
    add,
    end: (group) => {
      listed.delete(group);
      write(`end ${group}`);
    },
    close: () =>
      new Promise((resolve) => {
        closed = true;
        shell.once('exit', () => resolve());
        shell.stdin?.end();
      }),
  };
}
