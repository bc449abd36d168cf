"""Operations that run: their futures, their progress, and the one event loop they run on."""
