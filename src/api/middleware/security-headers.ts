import type { ApiMiddleware } from './request-state.ts';

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
];

const common = {
  'Content-Security-Policy': policy.join(';'),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'SAMEORIGIN',
};

/** Every answer allows scripts and styles of our origin only. TLS ends at a proxy, which is where HSTS belongs. */
export const securityHeaders: ApiMiddleware = (ctx, next) => {
  ctx.set(common);
  return next();
};
