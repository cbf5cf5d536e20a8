/** The connection to Temporal, by its own configuration: `TEMPORAL_*` variables and TOML profiles. */
import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { createDataConverter } from './data-converter.ts';

/** `host:port` */
export function readTemporalAddress(): string {
  return loadClientConnectConfig().connectionOptions.address ?? 'localhost:7233';
}

/** A client that connects when it is used, and again whenever it has to. @param payloadKeys the setting `PAYLOAD_KEYS` */
export function openTemporal(payloadKeys?: string): Client {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const connection = Connection.lazy({ ...connectionOptions, connectTimeout: '10 seconds' });
  const dataConverter = createDataConverter(payloadKeys);
  return new Client({ connection, dataConverter, ...(namespace === undefined ? {} : { namespace }) });
}
