import { useQuery } from '@tanstack/react-query';
import { openReviewsQuery } from '../api/reviews.ts';
import { usePolling } from '../live/live.tsx';
import { useTitleCount } from '../shared/title.ts';

/** Number of open reviews, also in the title of the tab. */
export function useReviewCount(): number {
  const count = useQuery({ ...openReviewsQuery(), refetchInterval: usePolling() }).data?.length ?? 0;
  useTitleCount(count);
  return count;
}
