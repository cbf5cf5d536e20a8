import type { ApiMiddleware } from './request-state.ts';

const graceMs = 5_000;

/**
 * For answers given before the whole body arrived: what still comes is thrown away for 5 s, so that the client reads
 * the answer instead of a reset, then the connection is cut.
 */
export const discardRest: ApiMiddleware = async ({ req, res }, next) => {
  await next();
  if (req.complete) return;
  res.once('finish', () => {
    if (req.complete) return;
    req.resume();
    const timer = setTimeout(() => req.socket.destroy(), graceMs);
    const stop = (): void => clearTimeout(timer);
    req.once('end', stop);
    req.once('close', stop);
  });
};
