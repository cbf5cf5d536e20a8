/**
 * A TCP connection that a test may cut, so that the target is unreachable; or silence, so that open connections get no
 * answer while new ones work, as after a failover, or with a firewall that forgets. It can also drop some answers with
 * their connections: the request was executed, and the client does not know.
 */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

export interface TcpProxy {
  /** `host:port` */
  readonly address: string;
  cut(): Promise<void>;
  restore(): Promise<void>;
  /**
   * Silences open connections, and later ones when `newToo`: nothing arrives and they stay open.
   * @returns how many are open
   */
  silence(newToo?: boolean): number;
  /** Drops this share of the target's answers from now on, each with its connection. */
  loseAnswers(share: number): void;
  /** How many were dropped so far. */
  answersLost(): number;
}

interface Link {
  readonly inward: Socket;
  readonly outward: Socket;
}

/** @param target `host:port` */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const [host = '', port = ''] = target.split(':');
  const open = new Set<Socket>();
  const links = new Set<Link>();
  let isMute = false;
  let lostShare = 0;
  let lost = 0;
  const passOrLose = ({ inward, outward }: Link) =>
    new Transform({
      transform: (chunk, _, pass) => {
        if (Math.random() >= lostShare) return pass(null, chunk);
        lost += 1;
        inward.destroy();
        outward.destroy();
      },
    });
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
  };
  const listen = (at: number) =>
    new Promise<Server>((resolve) => {
      const server = createServer((inward) => {
        const outward = connect(Number(port), host);
        for (const socket of [inward, outward]) keep(socket);
        const link = { inward, outward };
        links.add(link);
        inward.once('close', () => links.delete(link));
        inward.once('close', () => outward.destroy());
        outward.once('close', () => inward.destroy());
        if (isMute) inward.resume();
        else inward.pipe(outward).pipe(passOrLose(link)).pipe(inward);
      }).listen(at, '127.0.0.1', () => resolve(server));
    });
  let server = await listen(0);
  const { port: own } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${own}`,
    cut: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
    restore: async () => {
      isMute = false;
      server = await listen(own);
    },
    silence: (newToo = false) => {
      isMute = newToo;
      for (const { inward, outward } of links) {
        inward.unpipe(outward);
        outward.unpipe();
        inward.resume(); // read to notice its end; the data is discarded
      }
      return links.size;
    },
    loseAnswers: (share) => {
      lostShare = share;
    },
    answersLost: () => lost,
  };
}
