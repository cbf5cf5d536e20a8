/**
 * pg gives a statement a time on the client's side, but leaves it in front of all later ones of its connection. Its client
 * says by a field whether it is ready for the next one, and where its socket is.
 */
interface WaitingClient {
  readonly readyForQuery?: boolean;
  readonly connection: {
    readonly stream: {
      setTimeout(ms: number, onSilence: () => void): unknown;
      destroy(error: Error): unknown;
    };
  };
}

/** A connection that is asked and says nothing for so long is dead: what waits for it fails. */
export function endWhenSilent(client: object, ms: number): void {
  const waiting = client as WaitingClient;
  const { stream } = waiting.connection;
  stream.setTimeout(ms, () => {
    if (waiting.readyForQuery === true) return;
    const error = new Error(`the database said nothing for ${ms} ms`);
    stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
  });
}
