"""The book's workshop: what executes, builds, prints and hands out the book."""
