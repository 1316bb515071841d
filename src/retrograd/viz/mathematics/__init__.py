"""Operations and calls in the words and signs of mathematics."""
