/** The packages of `s3://`, loaded when it is asked for: 40 packages that nobody else needs. */
import { ConfigurationError } from '../../errors/configuration-error.ts';
import { installCommandOf, isNotInstalled } from '../../errors/missing-part.ts';

export interface S3Packages {
  readonly s3: typeof import('@aws-sdk/client-s3');
  readonly storage: typeof import('@aws-sdk/lib-storage');
  readonly presigner: typeof import('@aws-sdk/s3-request-presigner');
}

/** Optional parts of Capstan's package. */
export const s3PackageNames = [
  '@aws-sdk/client-s3',
  '@aws-sdk/lib-storage',
  '@aws-sdk/s3-request-presigner',
] as const;

async function importAll(): Promise<S3Packages> {
  const [s3, storage, presigner] = await Promise.all([
    import('@aws-sdk/client-s3'),
    import('@aws-sdk/lib-storage'),
    import('@aws-sdk/s3-request-presigner'),
  ]);
  return { s3, storage, presigner };
}

/** @throws Error with the command that installs them, when they are missing */
export async function loadS3Packages(load: () => Promise<S3Packages> = importAll): Promise<S3Packages> {
  try {
    return await load();
  } catch (cause) {
    if (!isNotInstalled(cause)) throw cause;
    const command = installCommandOf(...s3PackageNames);
    const message = `MEDIA_URL is s3://…, and the packages for it are not installed; install them: ${command}`;
    throw new ConfigurationError(message, { cause });
  }
}
