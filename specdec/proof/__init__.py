"""Is it lossless? By enumeration, by planted mistakes, by a statistical certificate."""
