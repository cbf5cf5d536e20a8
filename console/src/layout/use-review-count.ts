import { useQuery } from '@tanstack/react-query';
import { openReviewsQuery } from '../api/reviews.ts';
import { usePolling } from '../live/live.tsx';
import { useTitleCount } from '../shared/title.ts';

/** How many decisions wait for a person, in the title of the tab as well. */
export function useReviewCount(): number {
  const count = useQuery({ ...openReviewsQuery(), refetchInterval: usePolling() }).data?.length ?? 0;
  useTitleCount(count);
  return count;
}
