/** The connection to Temporal, by its own configuration: `TEMPORAL_*` variables and TOML profiles. */
import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';

/** `host:port` */
export function readTemporalAddress(): string {
  return loadClientConnectConfig().connectionOptions.address ?? 'localhost:7233';
}

/** @throws when the server does not answer within 10 s */
export async function connectTemporal(): Promise<Client> {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: '10 seconds' });
  return new Client({ connection, ...(namespace === undefined ? {} : { namespace }) });
}
