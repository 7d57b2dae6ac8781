"""The disk itself: files, their owner's rights, free room, and the threads that write and sync."""
