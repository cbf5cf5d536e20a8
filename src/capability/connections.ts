/**
 * What an HTTP server is answering right now, so that it can close as soon as that is done: Node counts a
 * connection that has not sent its first request as busy and would wait for it.
 */
import type { Server, ServerResponse } from 'node:http';

export interface Connections {
  readonly isClosing: boolean;
  /** @returns aborts when the caller closes the connection before the answer, or by `abort` */
  watch(response: ServerResponse): AbortSignal;
  /** Stops listening; every connection is closed once nothing is being answered. */
  close(): void;
  /** Aborts all that is being answered. */
  abort(reason: Error): void;
}

export function createConnections(server: Server): Connections {
  const open = new Map<ServerResponse, AbortController>();
  let isClosing = false;
  const closeWhenIdle = (): void => {
    if (isClosing && open.size === 0) server.closeAllConnections();
  };
  return {
    get isClosing() {
      return isClosing;
    },
    watch: (response) => {
      const caller = new AbortController();
      open.set(response, caller);
      response.once('close', () => {
        if (!response.writableFinished) caller.abort(new Error('the caller closed the connection'));
        open.delete(response);
        closeWhenIdle();
      });
      return caller.signal;
    },
    close: () => {
      isClosing = true;
      server.close();
      closeWhenIdle();
    },
    abort: (reason) => {
      isClosing = true;
      for (const caller of open.values()) caller.abort(reason);
    },
  };
}
