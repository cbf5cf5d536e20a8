/** Which connections are examined, how often, and which break. Intervals pass by hand. */
import { once } from 'node:events';
import { createServer, type Server, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { AddressRefused } from '@capstan/guarded-dial/guarded-dial';
import { portPairOf } from '@capstan/guarded-dial/socket-tables';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createSilenceWatch, MachineSilent, type Unacknowledged } from '../../src/clients/silent-machines.ts';

const intervalMs = 10_000;

async function aListener(): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).resume());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return server;
}

type Answer = 'accepted' | 'refused' | 'silent' | 'no route' | 'forbidden' | 'unresolved';

const failures: Record<Exclude<Answer, 'accepted'>, Error> = {
  refused: Object.assign(new Error(), { code: 'ECONNREFUSED' }),
  silent: Object.assign(new Error(), { code: 'ETIMEDOUT' }),
  'no route': Object.assign(new Error(), { code: 'EHOSTUNREACH' }),
  forbidden: new AddressRefused('169.254.169.254 is a link-local address'),
  unresolved: Object.assign(new Error(), { code: 'ENOTFOUND' }),
};

/** A connect with the given end. */
function scripted(answer: Answer): Socket {
  const socket = new Socket();
  if (answer === 'accepted') process.nextTick(() => socket.emit('connect'));
  else socket.destroy(failures[answer]);
  return socket;
}

interface Stage {
  /** Answers to the connects, in order; then all are silent. */
  readonly answers?: readonly Answer[];
  /** Connections with unacknowledged data; null: the system does not report them. */
  readonly unacknowledged?: (open: readonly Socket[]) => readonly Socket[] | null;
  readonly connections?: number;
}

async function aStage({ answers = [], unacknowledged = (open) => open, connections = 1 }: Stage) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { port } = (await aListener()).address() as { port: number };
  const open: Socket[] = [];
  const broken: Error[] = [];
  const asked: string[] = [];
  const next = answers.values();
  const { watch } = createSilenceWatch({
    intervalMs,
    openSocket: (url) => {
      asked.push(url.origin);
      return scripted(next.next().value ?? 'silent');
    },
    readUnacknowledged: (): Unacknowledged | null => {
      const found = unacknowledged(open);
      return found === null ? null : new Set(found.map(portPairOf));
    },
  });
  const url = new URL(`http://127.0.0.1:${port}`);
  for (let at = 0; at < connections; at++) {
    const socket = new Socket().connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.once('error', (error) => {
      broken[at] = error;
    });
    onTestFinished(() => void socket.destroy());
    open.push(socket);
    watch(socket, url);
    socket.write('a request');
  }
  const passIntervals = async (count: number): Promise<void> => {
    for (let interval = 0; interval < count; interval++) {
      vi.advanceTimersByTime(intervalMs);
      for (let turn = 0; turn < 5; turn++) await setImmediate();
    }
  };
  return { open, broken, asked, passIntervals };
}

const gone = expect.any(MachineSilent);

describe('a connection with unacknowledged data', () => {
  it.each<[string, Answer[], number]>([
    ['after three connects that are not answered', ['silent', 'silent', 'silent'], 3],
    ['after three without a route', ['no route', 'no route', 'no route'], 3],
    ['after three in a row', ['silent', 'silent', 'accepted', 'silent', 'silent', 'silent'], 6],
    ['also when its machine was up for long', [...Array(50).fill('accepted'), 'silent', 'silent'], 53],
    [
      'by those alone that were made',
      ['forbidden', 'silent', 'unresolved', 'silent', 'forbidden', 'silent'],
      6,
    ],
  ])('breaks %s', async (_, answers, count) => {
    const { broken, asked, passIntervals } = await aStage({ answers });
    await passIntervals(count - 1);
    expect(broken).toEqual([]);
    await passIntervals(1);
    expect(broken).toEqual([gone]);
    await passIntervals(5);
    expect(asked).toHaveLength(count);
  });

  it('stays while two connects in a row are never unanswered', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom<Answer>('accepted', 'refused'), { minLength: 1 }),
        async (replies) => {
          const answers = replies.flatMap((reply): Answer[] => ['silent', 'silent', reply]);
          const { open, broken, passIntervals } = await aStage({ answers });
          await passIntervals(answers.length);
          expect(broken).toEqual([]);
          for (const socket of open) socket.destroy();
        },
      ),
      { numRuns: 20 },
    );
  });

  it('shares its connect with all others of the same address, and they break together', async () => {
    const { asked, broken, passIntervals } = await aStage({ connections: 30 });
    await passIntervals(3);
    expect({ asked: asked.length, broken }).toEqual({ asked: 3, broken: Array(30).fill(gone) });
  });

  it('does not take others of the same address with it', async () => {
    const stage = await aStage({ connections: 3, unacknowledged: ([first]) => (first ? [first] : []) });
    await stage.passIntervals(4);
    expect(stage.broken).toEqual([gone]);
    expect(stage.open.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
  });
});

describe('a connection without unacknowledged data', () => {
  it('is left to TCP keepalive: its instance may have no room for a connect', async () => {
    const { asked, broken, passIntervals } = await aStage({ unacknowledged: () => [] });
    await passIntervals(50);
    expect({ asked, broken }).toEqual({ asked: [], broken: [] });
  });

  it('is examined again once more is written', async () => {
    let isAcknowledged = true;
    const stage = await aStage({ unacknowledged: (open) => (isAcknowledged ? [] : open) });
    await stage.passIntervals(5);
    isAcknowledged = false;
    await stage.passIntervals(5);
    expect(stage.broken).toEqual([]); // the system reported it after the last write
    stage.open[0]?.write('a second request');
    await stage.passIntervals(3);
    expect(stage.broken).toEqual([gone]);
  });
});

describe('where the system does not report it', () => {
  const unacknowledged = () => null;

  it.each<Answer>(['accepted', 'refused'])('a connection stays once a connect is %s', async (answer) => {
    const { asked, broken, passIntervals } = await aStage({
      answers: ['silent', 'silent', answer],
      unacknowledged,
    });
    await passIntervals(50);
    expect({ asked: asked.length, broken }).toEqual({ asked: 3, broken: [] });
  });

  it('a connection breaks after three connects that are not answered since it was written to', async () => {
    const { asked, broken, open, passIntervals } = await aStage({ answers: ['accepted'], unacknowledged });
    await passIntervals(10);
    open[0]?.write('a second request');
    await passIntervals(3);
    expect({ asked: asked.length, broken }).toEqual({ asked: 4, broken: [gone] });
  });
});

it.skipIf(process.platform !== 'linux')('Linux names a connection whose peer reads nothing', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = createServer({ pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const asked: string[] = [];
  const openSocket = (url: URL) => {
    asked.push(url.port);
    return scripted('accepted');
  };
  const { watch } = createSilenceWatch({ intervalMs, openSocket });
  const [read, unread] = ['a short request', Buffer.alloc(64 * 1_048_576)].map((text) => {
    const socket = new Socket().connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(text);
    return socket;
  });
  await Promise.all([once(read as Socket, 'connect'), once(unread as Socket, 'connect')]);
  watch(read as Socket, new URL(`http://short.test:${port}`));
  vi.advanceTimersByTime(intervalMs);
  expect(asked).toEqual([]);
  watch(unread as Socket, new URL(`http://127.0.0.1:${port}`));
  for (let interval = 1; interval <= 5; interval++) {
    vi.advanceTimersByTime(intervalMs);
    await setImmediate();
    expect(asked).toHaveLength(interval);
  }
});
