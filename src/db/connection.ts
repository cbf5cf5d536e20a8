/** How every connection to the database is made: by the pools of a process, and by the thread that watches over it. */
import type { ClientConfig } from 'pg';

const connectMs = 5_000;
/** With these settings the database detects a vanished client, and frees its locks, within half a minute. */
const serverKeepalive = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';

export function connectionTo(url: string) {
  return {
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    options: serverKeepalive,
    application_name: 'capstan',
  } satisfies ClientConfig;
}
