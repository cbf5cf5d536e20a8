/** What the API works with: every use case, wired once by the composition root. */
import type { JobService } from './jobs.ts';
import type { DirectMedia } from './media/direct-media.ts';
import type { MediaLibrary } from './media/media-library.ts';
import type { AliasService, PipelineService } from './pipelines/pipeline-service.ts';
import type { RunService } from './runs/run-service.ts';
import type { ScheduleService } from './schedules/schedule-service.ts';
import type { StreamService } from './stream/stream-service.ts';

export interface Services {
  readonly pipelines: PipelineService;
  readonly aliases: AliasService;
  readonly jobs: JobService;
  readonly media: MediaLibrary;
  readonly directMedia: DirectMedia;
  readonly runs: RunService;
  readonly streams: StreamService;
  readonly schedules: ScheduleService;
}
