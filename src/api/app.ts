/**
 * The HTTP API as one request listener: find the route, authenticate, read the body, handle, answer. What it needs
 * comes in; nothing is kept between requests.
 */
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Logger } from 'pino';
import { AppError } from '../errors/app-error.ts';
import type { Services } from '../services/services.ts';
import { translateFault } from './fault.ts';
import { authenticate, valuesOf } from './http/authenticate.ts';
import { Exchange } from './http/exchange.ts';
import { toProblemAnswer } from './http/problem.ts';
import { readBody } from './http/read-body.ts';
import { createRouteTable } from './http/route-table.ts';
import { sendAnswer } from './http/send-answer.ts';
import type { ApiConfig } from './limits.ts';
import type { Answer } from './route.ts';
import { createRoutes } from './routes/routes.ts';

export interface AppDependencies {
  readonly services: Services;
  readonly config: ApiConfig;
  readonly logger: Logger;
}

export interface App {
  readonly handle: RequestListener;
  /** From now on answers close their connections and open streams and waits end. */
  readonly drain: () => void;
}

export function createApp({ services, config, logger }: AppDependencies): App {
  const closing = new AbortController();
  const table = createRouteTable(createRoutes(services, { config, closing: closing.signal }));
  const open = new Set<Exchange>();

  const answer = async (exchange: Exchange): Promise<Answer> => {
    const { request, headers, path } = exchange;
    const url = request.url ?? '/';
    refuseAmbiguity(request, url);
    const found = table.find(request.method ?? 'GET', url);
    if (found === null) return answerUnrouted(exchange, table.methodsOf(url));
    const { route } = found;
    exchange.route = route;
    if (route.scope !== null) {
      exchange.caller = await authenticate(services.access, exchange, route.scope);
      headers['Cache-Control'] = 'no-store';
    }
    const { bytes, body } = await readBody(request, route.body, config);
    if (route.isLong) allowSilence(request);
    else if (closing.signal.aborted) exchange.leave();
    return route.handle({
      params: found.params,
      query: found.query,
      headers: request.headers,
      body,
      bytes,
      path,
      caller: exchange.caller,
      request_id: exchange.id,
      requestHeaders: request.headers,
      signal: exchange.gone,
      setHeader: (name, value) => {
        headers[name] = value;
      },
    });
  };

  const fail = (exchange: Exchange, thrown: unknown): void => {
    const error = translateFault(thrown);
    const about = { request_id: exchange.id, route: exchange.route?.path };
    if (isGone(exchange.request)) return void logger.debug({ ...about, err: error }, 'client gone');
    if (error.status >= 500) logger.error({ ...about, err: error.cause ?? error }, error.code);
    if (exchange.response.headersSent) return void exchange.response.destroy();
    const place = { instance: exchange.path, request_id: exchange.id };
    sendAnswer(exchange, toProblemAnswer(error, place), closing.signal.aborted);
  };

  return {
    handle: (request, response) => {
      const exchange = new Exchange(request, response);
      open.add(exchange);
      response.once('close', () => {
        open.delete(exchange);
        exchange.leave();
        exchange.log(logger);
      });
      answer(exchange)
        .then((ready) => sendAnswer(exchange, ready, closing.signal.aborted))
        .catch((thrown: unknown) => fail(exchange, thrown));
    },
    drain: () => {
      closing.abort();
      for (const exchange of open) if (exchange.route?.isLong !== true) exchange.leave();
    },
  };
}

/** Requests that different readers would read differently: several Host headers, NUL in the address. */
function refuseAmbiguity(request: IncomingMessage, url: string): void {
  const hosts = valuesOf(request, 'host').length;
  if (hosts > 1)
    throw new AppError('request_invalid', `the request has ${hosts} Host headers; one is allowed`);
  if (url.includes('%00')) throw new AppError('request_invalid', 'the address holds NUL (%00)');
}

/** 405 with `Allow` when the path exists, else 404. */
function answerUnrouted({ request, headers, path }: Exchange, allowed: readonly string[]): Answer {
  if (allowed.length === 0) throw new AppError('not_found', `there is no ${path.slice(0, 200)} here`);
  headers.Allow = allowed.join(', ');
  if (request.method === 'OPTIONS') return { status: 204 };
  throw new AppError('method_not_allowed', `${request.method} is not possible here; ${headers.Allow} is`);
}

/** Node sets the limit anew for the next request; a client that vanished is noticed by TCP. */
function allowSilence({ socket }: IncomingMessage): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 30_000);
}

function isGone({ destroyed, complete }: IncomingMessage): boolean {
  return destroyed && !complete;
}
