/** A TCP connection that a test may cut: while it is cut, nobody is there. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface TcpProxy {
  /** `host:port` */
  readonly address: string;
  cut(): Promise<void>;
  restore(): Promise<void>;
}

/** @param target `host:port` */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const [host = '', port = ''] = target.split(':');
  const open = new Set<Socket>();
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
        inward.once('close', () => outward.destroy());
        outward.once('close', () => inward.destroy());
        inward.pipe(outward).pipe(inward);
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
      server = await listen(own);
    },
  };
}
