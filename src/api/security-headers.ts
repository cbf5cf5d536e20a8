/** The headers that limit what an answer may do in a browser. */
import { type ApiContext, isReading } from './middleware.ts';

/** @param more directives besides those of every answer */
export function contentPolicy(...more: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    ...more,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join(';');
}

const ofAll = Object.entries({
  'Content-Security-Policy': contentPolicy(),
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
});

const ofPages = Object.entries({
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'SAMEORIGIN',
});

/**
 * Every answer allows scripts and styles of our origin only; an answer that could be a page has more headers. A proxy
 * ends TLS, so HSTS belongs there.
 */
export function setSecurityHeaders({ req, res }: Pick<ApiContext, 'req' | 'res'>): void {
  for (const [name, value] of ofAll) res.setHeader(name, value);
  if (isReading(req)) for (const [name, value] of ofPages) res.setHeader(name, value);
}
